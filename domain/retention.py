"""How much of everything is kept that would otherwise grow for ever; `herdbook doctor` tells each.

What goes when a bound is reached is always the oldest. Two things have no bound because nothing in
them is surplus: rows that people and agents made, which only they remove, and events that wait in
the spool, which go when a store has them.
"""

from datetime import timedelta
from typing import Final

OPERATIONS_KEPT: Final = timedelta(days=7)
"""How long results of operations, marks of events and notes of rewritten commits stay."""
MOST_CURSORS: Final = 1_000
"""How many cursors a space may have; expired ones make room, and one more is refused."""
FOLLOWER_KEPT: Final = timedelta(minutes=15)
"""How long the cursor of a follower holds that has not renewed it: one that was killed, say."""
FOLLOWER_RENEWED: Final = timedelta(minutes=5)
"""How often a follower renews its cursor while nothing happens."""
FOLLOWER_MOVED: Final = timedelta(minutes=1)
"""How often a follower moves its cursor at most; each time is a durable write."""
SESSION_LOG_BYTES: Final = 8 * 2**20
"""How large the log of one session of an agent may grow; its first pieces go then."""
AGENT_LOG_SESSIONS: Final = 50
"""Of how many sessions an agent's log is kept."""
SPACE_LOG_BYTES: Final = 2**30
"""How large all logs of a space may be together when a session begins; the oldest sessions go."""
ASIDE_FILE_BYTES: Final = 2**20
"""From which size on the file of lines that were set aside is kept as an earlier one."""
ASIDE_FILES: Final = 8
"""How many earlier files of lines that were set aside are kept; what goes then is counted."""
MANY_MARKERS: Final = 1_000
"""From how many markers of halted agents on `doctor` warns. None goes while its record sets it, and
of one agent there are at most those of the sessions in its last 1,000 entries."""
MOST_NOTES: Final = 50
"""How many notes about flushes of each kind are kept."""
MOST_MARKS: Final = 5_000
"""How many marks of each kind the state folder has: stores that were used, backups that were begun,
sessions that were reminded, checks of other programs' databases. Marks of what a person has made or
trusted and the originals of settings files stay, and `doctor` warns of as many."""
HOOK_LOG_BYTES: Final = 2**20
"""How large the log of the hooks grows; later trouble is not written there."""
