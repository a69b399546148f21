"""The language server: review comments beside lines of files, and which agents change a file.

`server` has the requests and notifications. The JSON-RPC server creates it when an editor sends
`initialize`; `initialize` has the answer. `buffers` holds the open texts. A `folder_session` is a
folder that the editor shows: `editor_worktree` finds the comments on its files, `lenses` finds the
agents that change them, and `journal_watcher` watches the journal. `publishing` sends the
diagnostics that `diagnostics` makes of comments; `actions` has code actions and commands.
`background_jobs` is the thread for work that takes long. Nothing here opens a file that an editor
names, except to read one inside the worktree.
"""
