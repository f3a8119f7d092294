package io.stasis.engine;

/**
 * How a tree is to be restarted.
 *
 * @param detached whether it gets no terminal and /dev/null for the outside world's descriptors
 * @param pids with which pids
 */
public record RestartOptions(boolean detached, PidChoice pids) {}
