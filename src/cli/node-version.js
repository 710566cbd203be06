/**
 * Why this Node cannot run the gateway. Plain JavaScript: build.mjs says it before anything is built.
 * @param {string} actual
 * @param {string} required `engines.node` of package.json: `>=` and a version
 * @returns {string | undefined}
 */
export const nodeFault = (actual, required) => {
  const [min = 0, minMinor = 0] = required.replace('>=', '').split('.').map(Number)
  const [major = 0, minor = 0] = actual.split('.').map(Number)
  return major > min || (major === min && minor >= minMinor)
    ? undefined
    : `Node ${required.replace('>=', '')} or newer is needed, and this is Node ${actual}: install a newer one from https://nodejs.org`
}
