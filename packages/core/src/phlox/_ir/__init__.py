"""The intermediate representation: dtypes, abstract values, primitives, Jaxprs and their text. Imports `_base`."""
