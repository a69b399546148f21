"""What editors are told: remarks of reviews in the margin, and who else is at a file.

`server` has the requests and notifications; the JSON-RPC server makes it when an editor says
`initialize`, which `greeting` answers. `buffers` holds the texts that are open. A `room` is a
folder that the editor shows: `workspace` is what the store remarks on its files, `lenses` who else
is at them, `live` follows the journal. `publishing` tells the editor, with what `diagnostics`
makes of remarks; `actions` are what can be done. `errands` is the thread for what takes a while.
Nothing here opens a file that an editor names, but for reading one inside the worktree.
"""
