"""Judge Python for an interpreter: only code that plainly computes runs unasked.

The same rule judges ``python3 -c`` and the tool that runs code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.core.shell_safety.places import names

if TYPE_CHECKING:
    import ast

MAX_CODE = 50_000

SAFE_MODULES = names(
    "json sys math re datetime time collections itertools functools string textwrap statistics random decimal "
    "fractions typing dataclasses enum operator platform calendar pprint uuid hashlib base64 binascii struct csv "
    "difflib unicodedata bisect heapq copy numbers cmath secrets html ast io pathlib zlib colorsys array __future__ "
    "email.utils urllib.parse ipaddress zoneinfo graphlib reprlib tomllib abc collections.abc"
)
_PULLED_IN = names(
    "_ast _bisect _blake2 _collections _csv _datetime _decimal _functools _hashlib _heapq _json _locale _opcode "
    "_opcode_metadata _operator _random _sha2 _sha512 _socket _sre _statistics _string _struct _tokenize _typing _uuid "
    "_weakrefset _zoneinfo contextlib copyreg dis email errno fnmatch glob grp hmac importlib inspect "
    "keyword linecache "
    "locale ntpath opcode pwd quopri select selectors socket sysconfig threading token tokenize types urllib "
    "warnings weakref"
)
"""What the safe modules import themselves: a file of the folder by such a name is imported in its place."""
_BAD_NAMES = names(
    "exec eval compile __import__ getattr setattr delattr globals locals vars breakpoint memoryview __builtins__ "
    "__loader__ help input __spec__ copyright credits license"
)
_FINE_DUNDERS = names("__version__ __file__ __doc__ __name__ __len__ __main__ __all__ __init__ __str__ __repr__")
# Every attribute that code may name, whatever it stands behind. A name is here only if it computes on each object that
# code can get hold of: no ``attrgetter``, ``get_type_hints``, ``Formatter``, ``buffer`` or ``raw``.
_FINE_ATTRIBUTES = names(
    # texts and bytes
    "capitalize casefold center count encode decode endswith expandtabs find format format_map index isalnum isalpha "
    "isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower "
    "lstrip maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split "
    "splitlines startswith strip swapcase title translate upper zfill hex fromhex "
    # lists, dicts, sets, numbers
    "append extend insert pop remove reverse sort clear copy get items keys values setdefault update popitem fromkeys "
    "add discard union intersection difference symmetric_difference issubset issuperset isdisjoint "
    "most_common elements "
    "appendleft popleft extendleft rotate maxlen bit_length bit_count to_bytes from_bytes as_integer_ratio is_integer "
    "conjugate real imag numerator denominator subtract total move_to_end "
    # modules that compute
    "loads dumps load dump JSONDecodeError match search sub subn findall finditer fullmatch group groups "
    "groupdict span "
    "start end escape IGNORECASE MULTILINE DOTALL VERBOSE ASCII I M S X pattern flags "
    "pi e tau inf nan sqrt cbrt pow exp exp2 log log2 log10 log1p expm1 sin cos tan asin acos atan atan2 "
    "sinh cosh tanh "
    "asinh acosh atanh ceil floor trunc fabs fmod modf gcd lcm factorial comb perm prod dist hypot isclose isfinite "
    "isinf isnan isqrt degrees radians erf erfc gamma lgamma copysign frexp ldexp fsum remainder ulp "
    "nextafter phase polar "
    "rect "
    "datetime date time timedelta timezone tzinfo now utcnow today fromtimestamp utcfromtimestamp fromisoformat "
    "isoformat isocalendar strftime strptime timestamp weekday isoweekday astimezone year month day hour minute second "
    "microsecond days seconds microseconds total_seconds utc UTC min max resolution combine toordinal fromordinal "
    "timetuple tzname utcoffset perf_counter monotonic time_ns sleep gmtime localtime mktime ctime asctime "
    "perf_counter_ns monotonic_ns process_time "
    "Counter defaultdict OrderedDict deque namedtuple ChainMap abc Mapping Sequence Iterable Iterator Callable "
    "chain cycle repeat accumulate compress dropwhile takewhile filterfalse groupby islice pairwise starmap tee "
    "zip_longest product permutations combinations combinations_with_replacement batched from_iterable "
    "partial reduce lru_cache cache cmp_to_key wraps cached_property "
    "ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits punctuation printable "
    "whitespace capwords "
    "dedent indent wrap fill shorten mean median mode stdev pstdev variance pvariance fmean geometric_mean "
    "harmonic_mean quantiles multimode median_low median_high correlation linear_regression "
    "random randint randrange choice choices shuffle sample uniform gauss normalvariate seed Random getrandbits "
    "betavariate expovariate triangular "
    "Decimal getcontext prec quantize ROUND_HALF_UP ROUND_HALF_EVEN ROUND_DOWN ROUND_UP ROUND_FLOOR ROUND_CEILING "
    "normalize to_integral_value Fraction limit_denominator "
    "Any Optional Union List Dict Set Tuple NamedTuple TypedDict Literal Protocol TypeVar Generic Final ClassVar Self "
    "dataclass field asdict astuple fields Enum IntEnum StrEnum Flag IntFlag auto name value unique "
    "add sub mul truediv floordiv mod neg itemgetter lt le eq ne gt ge and_ or_ xor not_ contains concat "
    "system_alias machine node processor release version python_version python_implementation architecture "
    "month_name month_abbr day_name day_abbr monthrange isleap leapdays TextCalendar prmonth prcal "
    "formatmonth calendar "
    "weekheader pprint pformat uuid4 uuid5 uuid3 UUID bytes int urn NAMESPACE_DNS NAMESPACE_URL "
    "md5 sha1 sha224 sha256 sha384 sha512 sha3_256 sha3_512 blake2b blake2s digest hexdigest new algorithms_available "
    "b64encode b64decode urlsafe_b64encode urlsafe_b64decode b32encode b32decode b16encode b16decode b85encode "
    "b85decode hexlify unhexlify crc32 adler32 compress decompress pack unpack calcsize iter_unpack "
    "reader writer writerow writerows DictReader DictWriter writeheader fieldnames line_num "
    "unified_diff ndiff context_diff SequenceMatcher ratio get_close_matches Differ compare get_opcodes "
    "normalize category name lookup numeric decimal digit east_asian_width combining bidirectional "
    "bisect bisect_left bisect_right insort insort_left insort_right heappush heappop heapify heappushpop heapreplace "
    "nlargest nsmallest merge deepcopy Number Real Integral "
    "token_hex token_bytes token_urlsafe randbelow compare_digest escape unescape literal_eval parse dump "
    "StringIO BytesIO getvalue rgb_to_hsv hsv_to_rgb rgb_to_hls hls_to_rgb array typecode tobytes tolist "
    "parsedate_to_datetime parseaddr formataddr formatdate format_datetime "
    "urlparse urlsplit urlunparse urlunsplit urljoin quote unquote quote_plus unquote_plus urlencode "
    "parse_qs parse_qsl "
    "scheme netloc path query fragment hostname port username geturl _replace _asdict _fields "
    "ip_address ip_network ip_interface IPv4Address IPv4Network IPv6Address IPv6Network hosts num_addresses "
    "network_address broadcast_address netmask prefixlen is_private is_loopback is_global is_multicast "
    "subnets supernet "
    "subnet_of overlaps exploded compressed ZoneInfo available_timezones key TopologicalSorter static_order "
    "annotations ABC abstractmethod "
    # sys
    "version_info argv platform maxsize executable byteorder stdin stdout stderr exit getsizeof prefix "
    "getrecursionlimit implementation getdefaultencoding float_info int_info base_prefix maxunicode "
    "hexversion major minor "
    "micro epsilon "
    # open files, and paths that are plain texts
    "read readline readlines write writelines close flush seek tell closed encoding Path PurePath PurePosixPath "
    "read_text read_bytes write_text write_bytes exists is_file is_dir glob rglob iterdir stem suffix suffixes parts "
    "open touch mkdir stat st_size st_mtime with_suffix "
    # exceptions
    "args msg lineno colno pos doc"
)
_NOT_OF_PATHS = names("replace copy move")
"""What texts have too, and what would change files on a path."""
_OPENS = names("open read_text read_bytes write_text write_bytes touch mkdir")
_PATHS = names("Path PurePath PurePosixPath")
_SHOWS_PATH = names("print len list sorted repr str tuple enumerate")


def judge_python(
    code: str, leads_out: Callable[[str], bool], stays_in: Callable[[str], bool], imports: Callable[[str], None]
) -> bool:
    """Tell whether Python only computes, prints and uses files of the folder.

    ``stays_in`` is asked about every path of a file; ``imports`` is called with every module that may be a file of the
    folder.
    """
    import ast

    if len(code) > MAX_CODE:
        return False
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    judging = _Python(leads_out, stays_in, imports)
    waiting: list[ast.AST] = [tree]
    nodes: list[ast.AST] = []
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if len(nodes) > 5_000:
            return False
        for child in ast.iter_child_nodes(node):
            judging.parents[child] = node
            waiting.append(child)
    for node in nodes:
        judging.bind(node)
    return all(judging.is_fine(node) for node in nodes)


class _Python:
    """Names that code gives a value, and what it may do with them."""

    def __init__(
        self, leads_out: Callable[[str], bool], stays_in: Callable[[str], bool], imports: Callable[[str], None]
    ) -> None:
        self._leads_out = leads_out
        self._stays_in = stays_in
        self._imports = imports
        self.parents: dict[ast.AST, ast.AST] = {}
        self._bound: dict[str, int] = {}
        """How often a name gets a value."""
        self._plain: dict[str, int] = {}
        """How often that value is a path of the folder, as it stands there."""
        self._has_paths = False
        self._foreign: set[str] = set()
        """Names of modules that are not on the safe list: they may load and run whatever they are given."""

    def bind(self, node: ast.AST) -> None:
        import ast

        given: list[str] = []
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                given = [name]
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                given = [name]
            case ast.ClassDef(name=name):
                given = [name]
            case ast.alias(name=name, asname=other):
                given = [(other or name).split(".")[0]]
                if name == "Path" and other is None:
                    self._plain["Path"] = self._plain.get("Path", 0) + 1
                self._has_paths = self._has_paths or name in ("pathlib", *_PATHS)
            case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
                given = [name]
            case ast.MatchStar(name=str() as name) | ast.MatchMapping(rest=str() as name):
                given = [name]
            case _:
                pass
        if isinstance(node, ast.Import):
            self._foreign |= {
                (alias.asname or alias.name).split(".")[0] for alias in node.names if alias.name not in SAFE_MODULES
            }
        for name in given:
            self._bound[name] = self._bound.get(name, 0) + 1
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if self._is_plain_path(value):
                self._plain[name] = self._plain.get(name, 0) + 1
            case ast.For(target=ast.Name(id=name), iter=ast.List(elts=each) | ast.Tuple(elts=each)) if all(
                map(self._is_plain_path, each)
            ):
                self._plain[name] = self._plain.get(name, 0) + 1
            case _:
                pass

    def _is_plain_path(self, node: ast.AST) -> bool:
        import ast

        match node:
            case ast.Constant(value=str() as path):
                return self._stays_in(path) and not self._leads_out(path)
            case ast.Name(id=name):
                return self._bound.get(name, 0) == self._plain.get(name, -1)
            case _:
                return False

    def is_fine(self, node: ast.AST) -> bool:
        import ast

        match node:
            case ast.Import(names=aliases):
                return all(self._may_import(alias.name) for alias in aliases)
            case ast.ImportFrom(module=module, names=aliases, level=level):
                return (
                    not level
                    and (module or "") in SAFE_MODULES
                    and self._may_import(module or "")
                    and all(alias.name in _FINE_ATTRIBUTES and alias.name != "path" for alias in aliases)
                )
            case ast.Name(id="open") | ast.Name(id="Path"):
                return self._is_path_maker(node)
            case ast.Name(id=name):
                if self._has_paths and name == "type":
                    return False
                if name in self._foreign:
                    parent = self.parents.get(node)
                    return isinstance(parent, ast.Attribute) and parent.attr in _FINE_DUNDERS
                return name not in _BAD_NAMES and (not name.startswith("__") or name in _FINE_DUNDERS)
            case ast.Attribute():
                return self._is_fine_attribute(node)
            case ast.MatchClass(kwd_attrs=attributes):
                return all(attribute in _FINE_ATTRIBUTES for attribute in attributes)
            case ast.ClassDef(bases=bases):
                return not (self._has_paths and bases)
            case ast.BinOp(op=ast.Div(), right=right) if self._has_paths:
                return isinstance(right, ast.Constant) and (
                    not isinstance(right.value, str) or self._is_below(right.value)
                )
            case ast.AugAssign(op=ast.Div()) if self._has_paths:
                return False
            case ast.Constant(value=str() as text):
                return not self._leads_out(text)
            case ast.Global() | ast.Nonlocal():
                return False
            case _:
                return True

    def _is_below(self, text: str) -> bool:
        return not text.startswith("/") and ".." not in text and self._stays_in(text)

    def _may_import(self, name: str) -> bool:
        """Accept a safe module, or another one of which only the version is asked."""
        import sys

        top = name.split(".")[0]
        if name in SAFE_MODULES:
            for one in (name, *(_PULLED_IN | SAFE_MODULES if name not in _ALWAYS_LOADED else ())):
                self._imports(one)
            return True
        if not top or top in sys.stdlib_module_names or top in _RISKY_PACKAGES:
            return False
        self._imports(name)
        return True

    def _is_fine_attribute(self, node: ast.Attribute) -> bool:
        import ast

        if node.attr not in _FINE_ATTRIBUTES and node.attr not in _FINE_DUNDERS:
            return False
        if not isinstance(node.ctx, ast.Load) and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            return False
        if self._has_paths and node.attr in _NOT_OF_PATHS:
            return False
        if node.attr == "path":
            return self._is_only_read(node)
        if self._has_paths and node.attr in ("glob", "rglob", "iterdir"):
            call = self.parents.get(node)
            return isinstance(call, ast.Call) and all(
                isinstance(one, ast.Constant) and self._is_below(str(one.value)) for one in call.args
            )
        if node.attr in _PATHS or node.attr == "open":
            return self._is_path_maker(node)
        return node.attr not in _OPENS or self._is_called_on_plain_path(node)

    def _is_only_read(self, node: ast.AST) -> bool:
        """Accept ``sys.path`` only where it is printed or looped over.

        Code that changes it decides what is imported.
        """
        import ast

        parent = self.parents.get(node)
        if isinstance(parent, ast.Starred):
            parent = self.parents.get(parent)
        match parent:
            case ast.Call(func=ast.Name(id=name)):
                return name in _SHOWS_PATH and name not in self._bound
            case ast.Call(func=ast.Attribute(attr="join")):
                return True
            case ast.For(iter=looped) | ast.comprehension(iter=looped):
                return looped is node
            case ast.Expr() | ast.FormattedValue():
                return True
            case _:
                return False

    def _is_path_maker(self, node: ast.AST) -> bool:
        """Accept ``open`` and ``Path`` only as calls with a literal path."""
        import ast

        if isinstance(node, ast.Name) and self._bound.get(node.id, 0) != self._plain.get(node.id, 0):
            return False  # it is something else by now
        call = self.parents.get(node)
        if not isinstance(call, ast.Call) or call.func is not node:
            return False
        if isinstance(node, ast.Name) and node.id == "open":
            return self._is_plain_open(call)
        if isinstance(node, ast.Attribute) and node.attr == "open":
            return self._is_called_on_plain_path(node)
        return not call.keywords and len(call.args) <= 1 and all(map(self._is_plain_path, call.args))

    def _is_plain_open(self, call: ast.Call) -> bool:
        import ast

        if not 1 <= len(call.args) <= 2 or not self._is_plain_path(call.args[0]):
            return False
        given = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
        return all(keyword.arg in ("mode", "encoding", "errors", "newline") for keyword in call.keywords) and all(
            isinstance(one, ast.Constant) and isinstance(one.value, str) for one in given
        )

    def _is_called_on_plain_path(self, node: ast.Attribute) -> bool:
        """Accept ``Path('out.txt').write_text(…)``, where the path is a literal."""
        import ast

        call = self.parents.get(node)
        if not isinstance(call, ast.Call) or call.func is not node:
            return False
        match node.value:
            case ast.Call(func=ast.Name(id="Path"), args=[ast.Constant(value=str())]):
                return True
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="pathlib"), attr="Path"), args=[ast.Constant(value=str())]
            ):
                return True
            case _:
                return False


_ALWAYS_LOADED = names("sys time io abc collections.abc __future__")
_RISKY_PACKAGES = names(
    "requests httpx aiohttp urllib3 paramiko fabric invoke sh plumbum pexpect psutil docker boto3 hermes cffi "
    "pip setuptools distutils _posixsubprocess tree_sitter joblib dill cloudpickle keyring"
)
