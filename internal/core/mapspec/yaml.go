package mapspec

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file. They are far above what people write and keep a hostile file from exhausting memory or the stack.
const (
	MaxFileBytes = 1 << 20 // bytes of a map or a tool catalogue
	maxNodes     = 50_000  // values after aliases are replaced
	maxKeys      = 10_000  // keys of mappings, as written
	maxDepth     = 64      // levels of nesting
)

// readFile parses YAML or JSON into a node tree. It returns nil after reporting why it could not.
func readFile(r *reporter, src []byte) *node {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	start := pos{1, 1}
	switch {
	case len(src) > MaxFileBytes:
		r.add(start, "split it", "the file has %d bytes; at most %d are accepted", len(src), MaxFileBytes)
		return nil
	case !utf8.Valid(src):
		r.add(invalidUTF8(src), "save it as UTF-8", "the file is not valid UTF-8")
		return nil
	}
	file := parseYAML(r, string(src))
	if file == nil {
		return nil
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			r.add(place(doc.Body), "keep one document in a file", "a second YAML document starts here")
			return nil
		}
		body = doc.Body
	}
	if body == nil {
		r.add(start, "begin with `version: 1`", "the file is empty")
		return nil
	}
	c := converter{r: r, anchors: map[string]ast.Node{}, src: src}
	return c.node(body, 0)
}

func invalidUTF8(src []byte) pos {
	at := pos{1, 1}
	for len(src) > 0 {
		c, size := utf8.DecodeRune(src)
		if c == utf8.RuneError && size == 1 {
			break
		}
		if at.col++; c == '\n' {
			at = pos{at.line + 1, 1}
		}
		src = src[size:]
	}
	return at
}

// parseYAML runs the YAML parser. Nesting is checked on the tokens, because the parser itself is recursive; a panic
// inside it is a mistake of the file as far as the user can tell.
func parseYAML(r *reporter, src string) (file *ast.File) {
	defer func() {
		if p := recover(); p != nil {
			r.add(pos{1, 1}, "check brackets, quotes and indentation", "the file cannot be read as YAML")
			file = nil
		}
	}()
	tokens := lexer.Tokenize(src)
	if at, problem := excess(tokens); problem != "" {
		r.add(at, "make it smaller", "%s", problem)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file
	}
	at, message := pos{1, 1}, "it cannot be read"
	var syntax *yaml.SyntaxError // its Error prints the source, which takes minutes for a very long line
	if errors.As(err, &syntax) {
		message = syntax.Message
		if syntax.Token != nil {
			at = tokenPlace(syntax.Token)
		}
	}
	r.add(at, yamlRemedy(message), "not valid YAML: %s", message)
	return nil
}

func yamlRemedy(message string) string {
	switch {
	case strings.Contains(message, "mapping value is not allowed"), strings.Contains(message, "must be specified"):
		return "put text that contains `: `, `{` or `}` in quotes"
	case strings.Contains(message, "cannot start any token"):
		return "indent with spaces, and put text that starts with a special character in quotes"
	}
	return "check brackets, quotes and indentation here"
}

// excess finds what the parser could not bear. It is recursive, so nesting that a line can hold without indentation is
// bounded: brackets, and chains of "- - -", "? ? ?", anchors and tags; nesting by indentation is bounded by the size
// of the file. And its time grows with the square of a mapping's entries.
func excess(tokens token.Tokens) (pos, string) {
	flow, chain, line, keys := 0, 0, 0, 0
	for _, t := range tokens {
		if t.Position != nil && t.Position.Line != line {
			chain, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			chain++
		case token.CollectEntryType:
			chain = 0
		case token.MappingValueType:
			keys++
		}
		switch {
		case flow > maxDepth || chain > maxDepth:
			return tokenPlace(t), fmt.Sprintf("nested deeper than %d levels", maxDepth)
		case keys > maxKeys:
			return tokenPlace(t), fmt.Sprintf("the file has more than %d keys", maxKeys)
		}
	}
	return pos{}, ""
}

func tokenPlace(t *token.Token) pos {
	if t == nil || t.Position == nil {
		return pos{1, 1}
	}
	return pos{t.Position.Line, t.Position.Column}
}

// place is where a node starts as a reader sees it: a mapping at its first key, a block text at its `|`.
func place(n ast.Node) pos {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return place(n.Values[0])
		}
	case *ast.MappingValueNode:
		return place(n.Key)
	case *ast.LiteralNode:
		return tokenPlace(n.Start)
	}
	return tokenPlace(n.GetToken())
}

// converter turns the parser's tree into nodes.
type converter struct {
	r       *reporter
	src     []byte
	anchors map[string]ast.Node
	count   int
	stopped bool
}

func (c *converter) node(n ast.Node, depth int) *node {
	if c.stopped || n == nil {
		return &node{}
	}
	if c.count++; c.count > maxNodes || depth > maxDepth {
		c.stopped = true
		c.r.add(place(n), "make it smaller", "the file has more than %d values or is nested deeper than %d levels", maxNodes, maxDepth)
		return &node{at: place(n)}
	}
	out := &node{at: place(n)}
	switch n := n.(type) {
	case *ast.MappingNode:
		c.mapping(out, n.Values, depth)
	case *ast.MappingValueNode:
		c.mapping(out, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out.kind = kindList
		for _, item := range n.Values {
			out.items = append(out.items, c.node(item, depth+1))
		}
	case *ast.AnchorNode:
		c.anchors[n.Name.GetToken().Value] = n.Value
		return c.node(n.Value, depth+1)
	case *ast.AliasNode:
		return c.alias(n, depth)
	case *ast.TagNode:
		c.r.add(out.at, "remove it; quote what must be text", "YAML tags such as %s are not used here", n.GetToken().Value)
	default:
		c.scalar(out, n)
	}
	return out
}

func (c *converter) alias(n *ast.AliasNode, depth int) *node {
	name := n.Value.GetToken().Value
	target, ok := c.anchors[name]
	if !ok {
		c.r.add(place(n), "define it above with &"+name, "there is no anchor named %q", name)
		return &node{at: place(n)}
	}
	out := *c.node(target, depth+1)
	return &out
}

func (c *converter) mapping(out *node, values []*ast.MappingValueNode, depth int) {
	out.kind = kindMap
	seen := map[string]pos{}
	for _, v := range values {
		at := place(v.Key)
		key, ok := c.key(v.Key)
		if !ok {
			c.r.add(at, "write the entries out", "this kind of key is not used here")
			continue
		}
		if first, dup := seen[key]; dup {
			c.r.add(at, "keep one of them", "`%s` is given twice, first at line %d", key, first.line)
			continue
		}
		seen[key] = at
		out.fields = append(out.fields, field{name: key, at: at, value: c.node(v.Value, depth+1)})
	}
}

// key accepts plain scalars: names are text, but a user may well name a query parameter 1 or true.
func (c *converter) key(n ast.MapKeyNode) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return n.GetToken().Value, true
	case *ast.MappingKeyNode:
		if key, ok := n.Value.(ast.MapKeyNode); ok {
			if _, nested := key.(*ast.MappingKeyNode); !nested {
				return c.key(key)
			}
		}
	}
	return "", false
}

func (c *converter) scalar(out *node, n ast.Node) {
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		out.kind, out.scalar = kindBool, n.Value
	case *ast.StringNode:
		out.kind, out.scalar = kindString, n.Value
		if n.Token.Type == token.StringType && numberForm.MatchString(n.Value) {
			c.number(out, n.Value)
		}
	case *ast.LiteralNode:
		out.kind, out.scalar = kindString, n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode:
		c.number(out, n.GetToken().Value)
	case *ast.InfinityNode, *ast.NanNode:
		c.r.add(out.at, "quote it if it is text", "%s is not a number that can be used", n.GetToken().Value)
	default:
		c.r.add(out.at, "", "%s is not used here", strings.ToLower(n.Type().String()))
	}
	if s, ok := out.scalar.(string); ok && !utf8.ValidString(s) {
		c.r.add(out.at, "", "the text is not valid UTF-8")
		out.scalar = ""
	}
}

// number reads decimal numbers only: what reads 0x1F, 1_000 or 010 differently from one YAML version to the next is
// refused rather than guessed.
func (c *converter) number(out *node, text string) {
	out.text = text
	if i, err := strconv.ParseInt(text, 10, 64); err == nil && (text == "0" || !strings.HasPrefix(strings.TrimLeft(text, "+-"), "0")) {
		out.kind, out.scalar = kindInt, i
		return
	}
	digits := strings.TrimLeft(text, "+-")
	f, err := strconv.ParseFloat(text, 64)
	plain := strings.Trim(digits, "0123456789.eE+-") == "" && strings.ContainsAny(digits, ".eE")
	if err != nil || !plain || math.IsInf(f, 0) {
		c.r.add(out.at, "write it in plain decimal digits, or quote it if it is text", "the number %s cannot be read exactly", text)
		out.kind, out.scalar = kindInt, int64(0)
		return
	}
	out.kind, out.scalar = kindFloat, f
}

// numberForm is a decimal number of YAML 1.2 and JSON. The parser hands on some of them as text: those with an
// exponent alone, and those that do not fit.
var numberForm = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// describe names a node for messages.
func describe(n *node) string {
	switch n.kind {
	case kindInt, kindFloat:
		return "the number " + n.text
	case kindBool:
		return fmt.Sprint(n.scalar)
	}
	return n.kind.String()
}
