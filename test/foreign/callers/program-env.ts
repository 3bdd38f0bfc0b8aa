/**
 * The environment for Debian's programs. They use the proxy that it names, but requests to 127.0.0.1 must not go
 * through a proxy.
 */
export function programEnv(): NodeJS.ProcessEnv {
  return { ...process.env, LC_ALL: 'C.UTF-8', NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' };
}
