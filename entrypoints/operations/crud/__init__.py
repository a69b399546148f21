"""Commands for rows of any kind."""
