"""The code behind the table of operations: one module for each group of them.

Each function takes what is known of the place (`bootstrap.Here`) and its parameters by name, and
returns what goes into JSON as it is. What a person reads is made of that in `screens`.
"""
