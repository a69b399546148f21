"""Both edges of the hexagon.

Outside: what an engine must do (`store`), in questions that are values (`query`), and what else
the world supplies (clock, ids, git facts). Inside, written once for every engine: the unit of
work, references, the journal, derived rows and the named repositories. Imports `domain` only.
"""
