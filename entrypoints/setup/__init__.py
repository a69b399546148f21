"""What coding agents are given to learn Herdbook by themselves: instructions, a skill, a plugin.

`instructions` has the section for AGENTS.md or CLAUDE.md, `plugin_files` the files of the plugin
folder, `host_setup` all changes that set one host up. Changes to files are those of `hooks`.
"""
