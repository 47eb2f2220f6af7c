"""The schema of the Tryll wire: `messages.fbs`, and what `flatc` makes of it for Python.

The codec uses neither: it is written by hand, since the generated code verifies nothing. They are here for other
people's clients, and for the tests, which compare the two. After a change:

    flatc --python --gen-onefile -o src/trunkline/wires/tryll/schema src/trunkline/wires/tryll/schema/messages.fbs
"""
