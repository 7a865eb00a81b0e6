// Command tables prints package variables of Go source files as one JSON object.
//
//	tables FILE:VARIABLE...
//
// It reads the syntax tree and runs nothing: the packages that hold the tables of facts need the
// whole AWS SDK to compile, and only their literals are wanted.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"strconv"
	"strings"
)

func main() {
	log.SetFlags(0)
	tables := map[string]any{}
	for _, argument := range os.Args[1:] {
		file, variable, _ := strings.Cut(argument, ":")
		literal, err := find(file, variable)
		if err != nil {
			log.Fatalf("tables: %s: %v", argument, err)
		}
		tables[variable] = literal
	}
	if err := json.NewEncoder(os.Stdout).Encode(tables); err != nil {
		log.Fatalf("tables: %v", err)
	}
}

// find returns the value that a file gives to a package variable.
func find(file, variable string) (any, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, declaration := range tree.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			if values, ok := spec.(*ast.ValueSpec); ok && values.Names[0].Name == variable {
				return value(values.Values[0])
			}
		}
	}
	return nil, fmt.Errorf("no variable %s", variable)
}

// value turns a literal into what encoding/json can write. Numbers keep their digits.
func value(expression ast.Expr) (any, error) {
	switch literal := expression.(type) {
	case *ast.BasicLit:
		if literal.Kind == token.STRING {
			return strconv.Unquote(literal.Value)
		}
		return json.Number(literal.Value), nil
	case *ast.Ident:
		switch literal.Name {
		case "true", "false":
			return literal.Name == "true", nil
		}
	case *ast.UnaryExpr:
		return value(literal.X)
	case *ast.CompositeLit:
		return composite(literal)
	}
	return nil, fmt.Errorf("not a literal: %T", expression)
}

// composite turns a map or struct literal into an object, a slice literal into an array.
func composite(literal *ast.CompositeLit) (any, error) {
	object, array := map[string]any{}, []any{}
	for _, element := range literal.Elts {
		pair, keyed := element.(*ast.KeyValueExpr)
		if !keyed {
			item, err := value(element)
			if err != nil {
				return nil, err
			}
			array = append(array, item)
			continue
		}
		item, err := value(pair.Value)
		if err != nil {
			return nil, err
		}
		name, err := key(pair.Key)
		if err != nil {
			return nil, err
		}
		object[name] = item
	}
	if len(array) > 0 {
		return array, nil
	}
	return object, nil
}

// key is a field's name or a map's string.
func key(expression ast.Expr) (string, error) {
	switch name := expression.(type) {
	case *ast.Ident:
		return name.Name, nil
	case *ast.BasicLit:
		return strconv.Unquote(name.Value)
	}
	return "", fmt.Errorf("not a key: %T", expression)
}
