"""Applications that programs of Ryu extend or require, written anew: classes, methods and attributes have Ryu's names.

`ryu.app.simple_switch_13` finds the one here, unless Ryu's own files are there. See `ryu_names`.
"""
