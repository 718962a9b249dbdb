"""Random chat templates: expressions over a message `m`, nested at random, in statements nested at random.

Constants that are not text are left out: Jinja evaluates `true[1:]` to nothing at compile time, and fails on it later.
"""

from hypothesis import strategies as st

ATOMS = st.just("m.content") | st.sampled_from(
    [
        *("m.content", "m['content']", "m.role", "m.name", "m.get('reasoning')", "m.thinking", "m.count", "m"),
        *("messages", "m.tool_calls", "m.tool_calls[0].function.name", "tools", "tools[0].function", "bos_token"),
        *("enable_thinking", "'lit'", "'é{}'", "'%s|'", "' a '", "''", "loop.index", "loop.first", "loop.length / 2"),
        *("['x', m.content]", "{'k': m.content, m.role: [1, m.count]}", "strftime_now('%d %b')", "shout(m.content)"),
        "(none if m else 1)",
    ]
)
UNARY = st.sampled_from(
    [
        *("@ | upper", "@ | lower", "@ | title", "@ | capitalize", "@ | trim", "@ | string", "@ | list"),
        *("@ | tojson", "@ | tojson(indent=2)", "@ | tojson(ensure_ascii=true, sort_keys=true)", "@ | length"),
        *("@ | indent(2)", "@ | indent('> ', first=true, blank=true)", "@ | replace('a', '<a>')", "@ | first"),
        *("@ | string | reverse", "@ | last", "@ | join('-')", "@ | truncate(5, true, '…', 0)", "@ | center(9)"),
        *("@ | default('none', true)", "@ | escape", "@ | wordwrap(4)", "@ | items | list", "@ | unique | list"),
        *("@[1:]", "@[:-1]", "@[::-1]", "@[0]", "@.strip()", "@.lstrip('a')", "@.rstrip()", "@ * 2"),
        *("@.split()", "@.split(' ', 1)", "@.rsplit('a')", "@.splitlines()", "@.partition(' ')", "not @"),
        *("@.rpartition('a')[2]", "@.replace('', '.')", "@.upper()", "@.title()", "@.swapcase()", "- @"),
        *("@.removeprefix('a')", "@.ljust(9, '.')", "@.startswith('a')", "@ is true", "@ is boolean"),
        *("@ is integer", "@ is string", "@ is none", "@ is defined", "@ | int(7)", "@ | sort | list"),
        *("@ | map('string') | join", "@ | batch(2) | list", "@.zfill(9)", "@ | safe", "@ | urlencode"),
    ]
)
BINARY = st.sampled_from(
    [
        *("@ + &", "@ ~ &", "@ if & else 'no'", "@ or &", "@ and &", "@ == &", "@ in &"),
        *("'%s/%s' % (@, &)", "'%5s%%' % @", "'%(a)s' % {'a': @}", "'%s:%s' | format(@, &)", "@ % &"),
        *(
            "'{}-{:>4}'.format(@, &)",
            "'{1!s}{a}{{'.format(@, &, a=@)",
            "'{a}'.format_map({'a': @})",
            "'{:{}}'.format(@, 9)",
        ),
        *("@.join([&, &])", "[@, &] | join", "@ | replace(&, '#')", "@.split(&)", "@ is sameas (& | length > 1)"),
        *("[@, &] | tojson", "{@: &} | tojson", "@[&]", "dict(a=@, b=&) | tojson", "@ | default(&)"),
    ]
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: (
        st.builds(lambda form, a: form.replace("@", f"({a})"), UNARY, inner)
        | st.builds(lambda form, a, b: form.replace("&", f"({b})").replace("@", f"({a})"), BINARY, inner, inner)
    ),
    max_leaves=5,
)
FORMS = st.sampled_from(
    [
        *("{{ @ }}", "{{- @ -}}", "{% set x = @ %}{{ x }}", "{% set x %}&{% endset %}{{ x }}{{ x | tojson }}"),
        *("{% filter upper %}&{% endfilter %}", "{% for c in @ %}{{ c }},{% endfor %}", "&\n&"),
        *("{% for k, v in @ | items %}{{ k ~ v }},{% endfor %}", "{% if @ %}&{%- else %}no{% endif %}"),
        *("{% macro f(a) %}&{{ a }}{% endmacro %}{{ f(@) }}", "{% call(a) shout('x') %}&{% endcall %}"),
        *("{% generation %}&{% endgeneration %}", "{% autoescape true %}{{ @ }}{% endautoescape %}"),
    ]
)
WORDS = st.sampled_from(["words\n", "  ", "\n", "<|im_start|>", "é\n\nx", "{# note #}"])
STATEMENTS = st.recursive(
    WORDS | st.builds("{{{{ {} }}}}".format, EXPRESSIONS),
    lambda inner: st.builds(
        lambda form, expression, body: form.replace("@", f"({expression})").replace("&", body),
        FORMS,
        EXPRESSIONS,
        inner,
    ),
    max_leaves=4,
)
PREAMBLE = "{% macro shout(text) %}{{ text ~ '!' }}{% if caller %}{{ caller(text) }}{% endif %}{% endmacro %}\n"
RANDOM_TEMPLATES = STATEMENTS.map(lambda body: PREAMBLE + "{% for m in messages %}" + body + "{% endfor %}")
