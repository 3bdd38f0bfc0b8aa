/** Debian's programs use the proxy that the environment names. Requests to 127.0.0.1 must not go through it. */
export function programEnv(): NodeJS.ProcessEnv {
  return { ...process.env, LC_ALL: 'C.UTF-8', NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' };
}
