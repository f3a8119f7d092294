package io.stasis.engine;

import java.nio.file.Path;

/**
 * What to restart and how.
 *
 * @param host name of this host
 * @param generation directory of the complete generation
 * @param imageHost the host's directory inside it whose tree is to be restored
 * @param workDirectory private directory for the stub's executable, on a file system that allows execution
 */
public record RestoreRequest(
        String host, Path generation, String imageHost, Path workDirectory, RestartOptions options) {}
