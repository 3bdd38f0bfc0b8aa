/** Programs of Debian read the proxy of the machine, which must not see 127.0.0.1. */
export function programEnv(): NodeJS.ProcessEnv {
  return { ...process.env, LC_ALL: 'C.UTF-8', NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' };
}
