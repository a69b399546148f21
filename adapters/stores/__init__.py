"""Opens, probes and checks stores by their URLs.

`engine_spec` is the descriptor of an engine, `registry` lists the engines, `open_store` and `probe`
use them. `base_store` is what all stores do alike, `urls` reads their URLs and `file_checks` checks
their files.
"""
