"""How long phlox makes people wait, beside the real jax and PyTorch: ./bench

`cases/` holds what is measured: functions that take the library (`jax`, `phlox`, `torch`) as argument. `worker` runs
them in a process of one library, `measure` lets such processes take turns, `report` and `picture` show what came out.
"""
