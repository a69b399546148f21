"""Clock, ids, processes and errors of the operating system."""
