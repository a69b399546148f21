herdbook initiative add 'Ship the login'
herdbook phase add Schema --initiative 'Ship the login' --status approved
herdbook task add 'Choose the keys' --phase Schema
herdbook task add 'Index sessions' --phase Schema
herdbook task set 'Index sessions' --priority high
