"""`completion`: completion scripts for shells."""

from typing import Any

from herdbook.entrypoints.context import AppContext

SCRIPTS = {
    "bash": """\
_herdbook() {
    local IFS=$'\\n'
    COMPREPLY=($(herdbook --complete "${COMP_WORDS[@]:1:COMP_CWORD}"))
}
complete -o default -F _herdbook herdbook
""",
    "zsh": """\
#compdef herdbook
_herdbook() {
    local -a found
    found=("${(@f)$(herdbook --complete "${(@)words[2,CURRENT]}")}")
    compadd -a found
}
compdef _herdbook herdbook
""",
    "fish": """\
complete --command herdbook --no-files \\
    --arguments '(herdbook --complete (commandline --tokens-expanded --cut-at-cursor)[2..] \\
        (commandline --current-token --cut-at-cursor))'
""",
}


def completion(app: AppContext, *, shell: str) -> dict[str, Any]:
    """The script that makes a shell complete the commands of Herdbook."""
    del app  # it is the same everywhere
    return {"shell": shell, "script": SCRIPTS[shell]}
