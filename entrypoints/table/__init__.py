"""The rows of the table of operations, a module for each part of the house.

Nothing here may import anything but what an operation is: every command loads all of it.
"""
