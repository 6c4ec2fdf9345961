"""Functions in Python as their authors write them: a handler in a file, and what it needs, in a decorator.

    import fairlead

    @fairlead.function(gpu_memory="4Gi", requirements=["numpy"], objective_ms=200)
    def hello(event):
        return {"you_sent": event}

`fairlead deploy hello.py` reads the file (declaration.py), installs its requirements once (layers.py), puts a folder together
that a node can run (bundle.py), and deploys it. In an instance serve.py loads the module once and calls the handler.
"""
