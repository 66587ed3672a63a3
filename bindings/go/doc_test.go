package shardrec_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestAllThatIsExportedIsDocumented(t *testing.T) {
	files, count := token.NewFileSet(), 0
	for _, path := range must(filepath.Glob("*.go")) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, declaration := range must(parser.ParseFile(files, path, nil, parser.ParseComments)).Decls {
			for name, comment := range exported(declaration) {
				if count++; comment == nil || len(comment.Text()) < len("X is Y.") {
					t.Errorf("%s: %s has no comment", path, name)
				}
			}
		}
	}
	ok(t, count > 600, count)
}

// exported are the names that a declaration exports, with their comments.
func exported(declaration ast.Decl) map[string]*ast.CommentGroup {
	names := map[string]*ast.CommentGroup{}
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || ast.IsExported(strings.Trim(types.ExprString(d.Recv.List[0].Type), "*")) {
			names[d.Name.Name] = d.Doc
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names[s.Name.Name] = first(s.Doc, d.Doc)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names[name.Name] = first(s.Doc, s.Comment, d.Doc)
				}
			}
		}
	}
	for name := range names {
		if !ast.IsExported(name) {
			delete(names, name)
		}
	}
	return names
}

func first(comments ...*ast.CommentGroup) *ast.CommentGroup {
	for _, comment := range comments {
		if comment != nil {
			return comment
		}
	}
	return nil
}

// Links lead to what there is.
func TestLinksOfTheDocumentationLeadSomewhere(t *testing.T) {
	names, links := map[string]bool{}, map[string]bool{}
	for _, path := range must(filepath.Glob("*.go")) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file := must(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments))
		for _, declaration := range file.Decls {
			owner := ""
			if function, is := declaration.(*ast.FuncDecl); is && function.Recv != nil {
				owner = strings.Trim(types.ExprString(function.Recv.List[0].Type), "*") + "."
			}
			for name := range exported(declaration) {
				names[owner+name] = true
			}
		}
		for _, comment := range file.Comments {
			for _, link := range regexp.MustCompile(`\[([A-Z]\w+(\.\w+)?)\]`).FindAllStringSubmatch(comment.Text(), -1) {
				links[link[1]] = true
			}
		}
	}
	for link := range links {
		ok(t, names[link], link)
	}
	ok(t, len(links) > 60, len(links))
}

// Go in the reference page is a part of an example, which runs.
func TestSamplesOfThePageAreExamples(t *testing.T) {
	flat := func(text string) string { return regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAllString(text, "") }
	examples, page := flat(string(must(os.ReadFile("example_test.go")))), string(must(os.ReadFile("README.md")))
	samples := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page, -1)
	for _, sample := range samples {
		for _, part := range strings.Split(flat(sample[1]), "...\n") {
			ok(t, strings.Contains(examples, part), part)
		}
	}
	ok(t, len(samples) >= 3, len(samples))
}
