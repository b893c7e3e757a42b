"""A door for agents: they read a lake, and change a branch of it.

`allowed.py` decides by an allow-list which statements pass, `door.py` runs them within limits, and `server.py` offers
the door's functions over the Model Context Protocol.
"""
