"""The transformations as users call them: jit, grad, vmap, pmap and their relatives."""
