use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Ini;
use Test::More;

sub reads {
    my ($text, $wanted, $what) = @_;
    my $got = eval { Ini::parse($text) };
    is_deeply($got, $wanted, $what) or diag($@ || explain($got));
}

reads("a = 1\n[s]\nb=2\n", { "" => { a => 1 }, s => { b => 2 } }, "sections");
reads("[s]\n[two words]\na = 1", { "two words" => { a => 1 } }, "a section with a space, and no end of line");
reads("; no\n  # no\n\na = 1 ; no\nb = 2 # no\n", { "" => { a => 1, b => 2 } }, "comments");
reads("a = x;y#z\nb = x=y==\n", { "" => { a => "x;y#z", b => "x=y==" } }, "marks within values");
reads(qq{a = "x ; y"  ; no\nb = "say \\"hi\\" \\\\"\nc = ""\n}, { "" => { a => "x ; y", b => 'say "hi" \\', c => "" } },
    "quotes");
reads("a = 1  \r\nb =\r\n", { "" => { a => 1, b => "" } }, "spaces and other ends of lines");
reads("a = one \\\n    two\nb = 3\n", { "" => { a => "one two", b => 3 } }, "values that go on");
reads("a = 1\na = 2\nlong-name.x = 3\n", { "" => { a => 2, "long-name.x" => 3 } }, "names");
for my $broken ("nonsense\n", "[open\n", "= 1\n", qq{a = "x\n}) {
    ok(!defined eval { Ini::parse($broken) }, "refused: $broken");
}
done_testing();
