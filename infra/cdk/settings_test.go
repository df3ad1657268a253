package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestSettingsAreReadFromTheCommandLineAndFromTheFile(t *testing.T) {
	typed, err := parse(map[string]any{"sluice:keepData": false, "sluice:logDays": 7.0, "sluice:secretNames": []any{"a", "b/"}, "other": "x"})
	if err != nil {
		t.Fatal(err)
	}
	texts, err := parse(map[string]any{"sluice:keepData": "false", "sluice:logDays": "7", "sluice:secretNames": "a, b/"})
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.KeepData, want.LogDays, want.SecretNames = false, 7, []string{"a", "b/"}
	if !reflect.DeepEqual(typed, want) || !reflect.DeepEqual(texts, want) {
		t.Errorf("%+v\n%+v, want\n%+v", typed, texts, want)
	}
}

func TestWrongSettingsAreRefusedByName(t *testing.T) {
	for name, value := range map[string]any{
		"keepdata": true, "keepData": "maybe", "architecture": "sparc", "logDays": 8, "logLevel": "loud",
		"runmapMemory": 64, "apiRate": 0, "uploadDays": "many", "toolexecConcurrency": -1,
		"secretParameters": "sluice/", "secretNames": "*", "secretKeys": "key", "stack ": "x", "publicUrl": "http://sluice.example",
	} {
		_, err := parse(map[string]any{prefix + name: value})
		if err == nil || !strings.Contains(err.Error(), prefix+name) {
			t.Errorf("%s=%v: %v", name, value, err)
		}
	}
	if s, err := parse(map[string]any{"sluice:secretParameters": "/"}); err == nil {
		t.Errorf("every parameter of the account is allowed: %v", s.SecretParameters)
	}
}

func TestEverySettingIsDocumented(t *testing.T) {
	guide, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	s := defaults()
	for name := range s.fields() {
		if !strings.Contains(string(guide), fmt.Sprintf("| `%s` |", name)) {
			t.Errorf("docs/deploy.md does not list %s", name)
		}
	}
}

func TestFunctionThatIsNotBuiltIsNamed(t *testing.T) {
	s := defaults()
	s.Build = t.TempDir()
	_, err := builtFunctions(s)
	if err == nil || !strings.Contains(err.Error(), "runmap") || !strings.Contains(err.Error(), "functions/build.sh") {
		t.Errorf("%v", err)
	}
}
