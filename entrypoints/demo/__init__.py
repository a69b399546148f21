"""The demo: a herd of real processes at work on a real repository, in a folder of its own.

`plot` says who works on what, `stage` sets up the folder and keeps it apart from the user's own,
`agent` is what one agent's process does, `story` directs them, `judging` grades what they did,
`narration` tells it, and `outcome` checks that all went as it had to.
"""
