# Another agent and some tasks. quick-lynx answers a question, and asks one before somebody listens:
# its id is what the document calls c3d4.
herdbook agent add quick-lynx
herdbook task add "write the parser" --priority high
herdbook task add "test the parser"
lynx() {
    HERDBOOK_AGENT=quick-lynx command herdbook "$@"
}
field_id() {
    python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])'
}
herdbook() {
    case "$1 ${2:-} ${3:-}" in
    "conversation listen --wait")
        question=$(lynx conversation add "which host?" --to brisk-otter --json | field_id)
        ;;
    "conversation answer c3d4") set -- conversation answer "$question" "$4" ;;
    esac
    command herdbook "$@"
}
(
    asked=$(lynx conversation listen --wait 300s --json | field_id)
    lynx conversation answer "$asked" 8080
) >/dev/null &
