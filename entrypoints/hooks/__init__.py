"""Putting the hook into coding agents' settings and git's hooks, and taking it out again.

`agents` and `git` name the files of each program and what is to stand in them, as a list of
`changes.Change`; `settings` and `jsonc` rewrite other people's JSON and touch no byte that is not
ours; `changes` shows, makes and undoes.
"""
