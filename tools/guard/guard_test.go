package guard

import (
	"os"
	"strings"
	"testing"
)

const (
	target  = "//agent/cmd/x:x"
	grpc    = "@@gazelle~~go_deps~org_golang_google_grpc//:grpc"
	goMod   = "module a\n\nrequire (\n\tgoogle.golang.org/grpc v1.85.0\n\tk8s.io/api v1.0.0 // indirect\n)\n\nrequire k8s.io/client-go v1.0.0\n"
	ownFile = "//agent/small:small.go"
)

func TestDeps(t *testing.T) {
	self := []string{target, "//agent/cmd/x:x_lib", "//agent/cmd/x:main.go", "@@rules_go~//:stdlib"}
	never := map[string]string{"google.golang.org/grpc": "its registries run in init()"}
	for name, c := range map[string]struct {
		guard  Deps
		labels []string
		want   []string // parts of the sentences, in order
	}{
		"nothing of it":                  {Deps{Only: []string{"//agent/small"}}, append(self, ownFile), nil},
		"allowed by default":             {Deps{Never: never}, append(self, ownFile, "@@gazelle~~go_deps~com_github_x//:x"), nil},
		"a module":                       {Deps{Only: []string{"//agent/small"}}, append(self, ownFile, grpc), []string{"org_golang_google_grpc: it may have nothing but the standard library and //agent/small"}},
		"a package of ours":              {Deps{Only: []string{"//agent/small"}}, append(self, ownFile, "//agent/large:large.go"), []string{"is linked from //agent/large"}},
		"no longer linked":               {Deps{Only: []string{"//agent/small"}}, self, []string{"isn't linked from //agent/small any more"}},
		"forbidden":                      {Deps{Never: never}, append(self, grpc), []string{"@org_golang_google_grpc): its registries run in init()"}},
		"forbidden, as Bazel 8 names it": {Deps{Never: never}, append(self, "@@gazelle++go_deps+org_golang_google_grpc//:grpc"), []string{"its registries"}},
		"forbidden with all below":       {Deps{Never: map[string]string{"k8s.io": "x"}}, append(self, "@@gazelle~~go_deps~io_k8s_api//core/v1"), []string{"@io_k8s_api): x"}},
		"renamed":                        {Deps{Never: map[string]string{"k8s.io/client": "x"}}, self, []string{"go.mod has no k8s.io/client any more"}},
		"expected one day":               {Deps{Never: map[string]string{"k8s.io/client": "x"}, NotYet: []string{"k8s.io/client"}}, self, nil},
		"there by now":                   {Deps{Never: never, NotYet: []string{"google.golang.org/grpc"}}, self, []string{"go.mod has google.golang.org/grpc by now"}},
		"not yet what isn't forbidden":   {Deps{Never: never, NotYet: []string{"a"}}, self, []string{"not_yet has a"}},
		"empty list":                     {Deps{Never: never}, nil, []string{"the 0 labels given don't have //agent/cmd/x:x"}},
		"of another target":              {Deps{Never: never}, []string{"//b:b"}, []string{"don't have //agent/cmd/x:x"}},
		"nothing forbidden":              {Deps{}, self, []string{"forbids nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.guard.Target = target
			got := c.guard.Check(c.labels, goMod)
			if len(got) != len(c.want) {
				t.Fatalf("%q, want %d", got, len(c.want))
			}
			for i, part := range c.want {
				if !strings.Contains(got[i], part) {
					t.Errorf("%q, want …%s…", got[i], part)
				}
			}
		})
	}
}

func TestRepository(t *testing.T) {
	for module, want := range map[string]string{
		"k8s.io/client-go":                  "io_k8s_client_go",
		"sigs.k8s.io/controller-runtime":    "io_k8s_sigs_controller_runtime",
		"github.com/CycloneDX/cyclonedx-go": "com_github_cyclonedx_cyclonedx_go",
		"go.yaml.in/yaml/v3":                "in_yaml_go_yaml_v3",
		"k8s.io":                            "io_k8s",
	} {
		if got := Repository(module); got != want {
			t.Errorf("%s: %s, want %s", module, got, want)
		}
	}
}

func TestBudget(t *testing.T) {
	const budgets = "# bytes target\n  12 //a/b  why\n"
	if got, err := Budget(budgets, "//a/b"); got != 12 || err != nil {
		t.Error(got, err)
	}
	for _, text := range []string{"", "# 12 //a/b\n", "1.5MB //a/b\n"} {
		if got, err := Budget(text, "//a/b"); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestLargestPackages(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := Largest(self, 3)
	if err != nil || len(sizes) != 3 || sizes[0].Package != "runtime" || sizes[0].Bytes < sizes[1].Bytes {
		t.Errorf("%v, %v: want runtime first, and three", sizes, err)
	}
	if _, err := Largest(os.DevNull, 3); err == nil {
		t.Error("no program, no error")
	}
}

func TestPackageOf(t *testing.T) {
	for function, want := range map[string]string{
		"main.main": "main", "a.b/c.(*T).f": "a.b/c", "a.b/c.F[go.shape.string]": "a.b/c",
		"slices.SortFunc[[]a.b/c.T,a.b/c.T]": "slices", "type:.eq.[2]string": "type:",
	} {
		if got := packageOf(function); got != want {
			t.Errorf("%s: %q, want %q", function, got, want)
		}
	}
}
