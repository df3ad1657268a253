package laptop

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

const soon = time.Minute // ample for what takes moments

const inputMap = `version: 1
name: shout
columns:
  - {name: loud, value: "${row.name + '!'}"}
`

// inputTable is what all readable inputs say: umlauts, a quote, a delimiter, an empty cell.
const inputTable = "name,town,loud\nJürgen,Köln,Jürgen!\n\"Zoë \"\"Z\"\"\",\"Łódź; Málaga, Oslo\",\"Zoë \"\"Z\"\"!\"\nUwe,,Uwe!\n"

func TestInputsAsUsersHaveThem(t *testing.T) {
	utf8CSV := "name,town\nJürgen,Köln\n\"Zoë \"\"Z\"\"\",\"Łódź; Málaga, Oslo\"\nUwe,\n"
	for _, tt := range []struct {
		name, file, text string
		flags            []string
		want             string // "": inputTable
	}{
		{name: "plain", text: utf8CSV},
		{name: "byte order mark", text: "\ufeff" + utf8CSV},
		{name: "CRLF", text: strings.ReplaceAll(utf8CSV, "\n", "\r\n")},
		{name: "no newline at the end", text: strings.TrimSuffix(utf8CSV, "\n")},
		{name: "semicolons", text: "name;town\nJürgen;Köln\n\"Zoë \"\"Z\"\"\";\"Łódź; Málaga, Oslo\"\nUwe;\n"},
		{name: "tabs", text: "name\ttown\nJürgen\tKöln\n\"Zoë \"\"Z\"\"\"\tŁódź; Málaga, Oslo\nUwe\t\n"},
		{name: "delimiter by flag", text: "name|town\nJürgen|Köln\n\"Zoë \"\"Z\"\"\"|Łódź; Málaga, Oslo\nUwe|\n", flags: []string{"--delimiter", "|"}},
		{name: "UTF-16", text: "\xff\xfen\x00a\x00m\x00e\x00\n\x00\xdf\x00\n\x00", want: "name,loud\nß,ß!\n"},
		{name: "windows-1252", text: "name,town\nJ\xfcrgen,K\xf6ln\n\x80 5,x\n", flags: []string{"--encoding", "windows-1252"}, want: "name,town,loud\nJürgen,Köln,Jürgen!\n€ 5,x,€ 5!\n"},
		{name: "latin1", text: "name\nJ\xfcrgen\n", flags: []string{"--encoding", "latin1"}, want: "name,loud\nJürgen,Jürgen!\n"},
		{name: "a newline in a cell", text: "name\n\"two\nlines\"\n", want: "name,loud\n\"two\nlines\",\"two\nlines!\"\n"},
		{name: "header only", text: "name\n", want: "name,loud\n"},
		{name: "JSONL", file: "in.jsonl", text: `{"name": "Jürgen", "town": "Köln"}` + "\n" + `{"name": "Zoë \"Z\"", "town": "Łódź; Málaga, Oslo"}` + "\n" + `{"name": "Uwe", "town": null}` + "\n"},
		{name: "JSON array", file: "in.json", text: `[{"name": "Jürgen", "town": "Köln"},` + "\n" + ` {"name": "Zoë \"Z\"", "town": "Łódź; Málaga, Oslo"}, {"name": "Uwe", "town": ""}]`},
	} {
		if tt.file == "" {
			tt.file = "in.csv"
		}
		if tt.want == "" {
			tt.want = inputTable
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.write("map.yaml", inputMap)
			d.write(tt.file, tt.text)
			d.sluice(append([]string{"run", "map.yaml", "--in", tt.file, "--out", "out.csv", "--quiet"}, tt.flags...)...).want(0, soon)
			if got := d.read("out.csv"); got != tt.want {
				t.Errorf("from a file:\n%s\nwant:\n%s", got, tt.want)
			}
			p := d.start(strings.NewReader(tt.text), sluiceProgram, append([]string{"run", "map.yaml", "--in", "-", "--out", "-"}, tt.flags...)...).want(0, soon)
			if got := p.out.String(); got != tt.want {
				t.Errorf("from a pipe to a pipe:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

// What cannot be read as it was meant is refused with its place, before anything is paid for, and leaves nothing behind.
func TestBrokenInputsLeaveNothingBehind(t *testing.T) {
	for _, tt := range []struct{ name, file, text, says string }{
		{"empty", "in.csv", "", "in.csv: "},
		{"too few cells", "in.csv", "name,town\na,b\nc\n", "in.csv:3"},
		{"too many cells", "in.csv", "name,town\na,b,c\n", "in.csv:2"},
		{"the same header twice", "in.csv", "name,name\na,b\n", "in.csv:1"},
		{"a quote that never ends", "in.csv", "name,town\na,b\n\"c,d\ne,f\n", "in.csv:3"},
		{"a quote inside a cell", "in.csv", "name,town\na,b\nc,d\"e\"\n", "in.csv:3"},
		{"not UTF-8", "in.csv", "name,town\na,b\nJ\xfcrgen,K\xf6ln\n", "in.csv:3"},
		{"not JSON", "in.jsonl", "{\"name\": \"a\"}\n{\"name\": \n", "in.jsonl:2"},
		{"not an object", "in.jsonl", "{\"name\": \"a\"}\n[1]\n", "in.jsonl:2"},
		{"an array that breaks off", "in.json", "[{\"name\": \"a\"},\n{\"name\": \"b\"}\n", "in.json:"},
		{"a number that would be rounded", "in.jsonl", "{\"name\": 1}\n{\"name\": 12345678901234567890123}\n", "in.jsonl:2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.write("map.yaml", inputMap)
			d.write(tt.file, tt.text)
			for _, from := range []struct {
				arg   string
				stdin io.Reader
				says  string
			}{
				{tt.file, nil, tt.says}, {"-", strings.NewReader(tt.text), strings.Replace(tt.says, tt.file, "standard input", 1)},
			} {
				p := d.start(from.stdin, sluiceProgram, "run", "map.yaml", "--in", from.arg, "--out", "out.csv").want(2, soon)
				if !strings.Contains(p.err.String(), from.says) {
					t.Errorf("it does not say %q, but: %s", from.says, p.err)
				}
				d.nothingLeft(tt.file)
			}
		})
	}
}

// nothingLeft checks that the folder has only what the user put there and a state without runs.
func (d *desk) nothingLeft(in string) {
	d.t.Helper()
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != "map.yaml" && name != in && name != ".sluice" {
			d.t.Errorf("%s was left behind", name)
		}
	}
	if p := d.sluice("runs", "--json"); p.ended(soon) && p.out.String() != "" {
		d.t.Errorf("a run was left behind: %s", p.out)
	}
}
