"""Wake-ups over Unix datagram sockets, one per listener, in a folder of the user for each store.

`wakeups` is what a store has; a process that only writes, and to which nobody listens, imports
nothing else. `socket_folder` says where the sockets are and whom to trust, `sockets` rings and
listens, `coalesce` turns many rings in a row into a few.
"""
