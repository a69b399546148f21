"""Opens, probes and checks stores by their URLs.

`engine_spec` is the descriptor of an engine, `registry` lists the engines, `open_store` and `probe`
use them. `urls` reads the URLs of stores and `file_checks` checks their files.
"""
