# A plan, and an account with credentials in the record.
herdbook task add "Write the migration"
printf 'a token' | herdbook account add work --provider claude --credentials -
