"""Process templates: YAML in, a validated and compiled `Plan` out; conditions as a small safe language.

Pure: no database, no clock, no network. Templates are stored by the store and by `services`, never here.
"""
