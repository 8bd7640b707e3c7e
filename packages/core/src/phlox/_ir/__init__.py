"""The intermediate language: element types, abstract values, primitives, Jaxprs and their printed form."""
