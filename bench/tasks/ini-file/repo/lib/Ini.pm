package Ini;

# Settings in sections:
#
#   ; a line that begins with ; or # is a comment, also after spaces
#   [section]
#   name = value        ; after a space, ; or # begin a comment here, too
#   name = "a value"    in quotes they do not, and \" and \\ stand for " and \
#   name = one \        a backslash at the end: the value goes on in the next line,
#          two          after a single space
#
# What comes before the first section belongs to the section "". Of two lines with one name the last counts.

use strict;
use warnings;

sub parse {
    my ($text) = @_;
    my (%settings, $section);
    $section = "";
    for my $line (split /\n/, $text) {
        $line =~ s/[;#].*//;
        if ($line =~ /^\[(\w+)\]/) {
            $section = $1;
        }
        elsif ($line =~ /(\w+)\s*=\s*(.*)=?/) {
            my ($name, $value) = ($1, $2);
            $value =~ s/"//g;
            $settings{$section}{$name} = $value;
        }
        elsif ($line =~ /\S/) {
            die "cannot read: $line\n";
        }
    }
    return \%settings;
}

1;
