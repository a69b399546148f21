"""What a storage engine implements, and the data dictionary it is given."""
