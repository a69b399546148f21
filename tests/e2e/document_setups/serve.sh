# Somebody has a server running, about this folder, with something to do.
herdbook task add "write the parser" >/dev/null
herdbook serve --no-open >/dev/null 2>&1 &
state="${XDG_STATE_HOME:-$HOME/.local/state}/herdbook/serve"
until [ -e "$state/server.json" ]; do sleep 0.1; done
