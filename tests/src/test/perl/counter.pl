#!/usr/bin/perl
# Perl with a child behind a pipe, signal handlers, closures, regular expressions; see check.h for the rules.
use strict;
use warnings;
use Time::HiRes qw(sleep);
use Digest::MD5 qw(md5_hex);

my $progress = shift;
sub report { open(my $f, '>>', $progress) or die; syswrite($f, "$_[0]\n"); close($f); }
sub fail { report("FAIL $_[0]"); exit 99; }
$SIG{__DIE__} = sub { fail("died: @_"); };

my ($there_r, $there_w, $back_r, $back_w);
pipe($there_r, $there_w) or die;
pipe($back_r, $back_w) or die;
my $child = fork();
if ($child == 0) {
    close($there_w);
    close($back_r);
    $back_w->autoflush(1);
    while (my $line = <$there_r>) {
        chomp $line;
        print $back_w md5_hex($line), "\n";
    }
    exit 13;
}
close($there_r);
close($back_w);
$there_w->autoflush(1);
my $alarms = 0;
$SIG{ALRM} = sub { $alarms++; Time::HiRes::ualarm(50_000); };
Time::HiRes::ualarm(50_000);
my %table = map { $_ => $_ * $_ } 1 .. 5000;
my $count = do { my $n = 0; sub { return ++$n } };
while (!-e "$progress.stop") {
    my $n = $count->();
    print $there_w "message $n\n";
    my $answer;
    do { $answer = <$back_r> } until defined $answer;
    chomp $answer;
    fail("answer $answer to message $n") if $answer ne md5_hex("message $n");
    my $k = $n % 5000 + 1;
    fail("the table changed") if $table{$k} != $k * $k;
    fail("the expression did not match") unless "value=$n;" =~ /^value=(\d+);$/ && $1 == $n;
    report("tick $n");
    sleep(0.003);
}
close($there_w);
1 while waitpid($child, 0) != $child;
fail("the child ended with $?") if $? >> 8 != 13;
my $before = $alarms;
for (my $i = 0; $alarms == $before; $i++) {
    fail("no alarm comes") if $i > 1000;
    sleep(0.01);
}
report("done");
exit 42;
