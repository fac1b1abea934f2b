"""Python's literals, in which a dict may also be a call of ``dict``, as configs write it."""

import ast


def literal(node: ast.expr) -> object:
    """The value of a literal; nothing is executed.

    Raises:
        SyntaxError, TypeError, ValueError, RecursionError, MemoryError: if it is something else, or
            nested too deeply.
    """
    if isinstance(node, ast.Call) and ast.unparse(node.func) == 'dict' and not node.args:
        if any(keyword.arg is None for keyword in node.keywords):
            raise ValueError('** is not possible here: write the keys')
        return {keyword.arg: literal(keyword.value) for keyword in node.keywords}
    if isinstance(node, ast.Dict):
        keys = map(ast.literal_eval, node.keys)
        return dict(zip(keys, map(literal, node.values), strict=True))
    if isinstance(node, (ast.List, ast.Tuple)):
        return (list if isinstance(node, ast.List) else tuple)(map(literal, node.elts))
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise ValueError(f'{ast.unparse(node)} is not a literal: text needs quotes') from error
