// Put before the built gateway by `node --import`: its pipeline and its cache report to nobody. Only to measure what reporting costs.
import { register } from 'node:module'

const hooks = `
const silent = {
  'observe-pipeline.js': 'export const createPipelineObserver = () => () => {}',
  'observe-cache.js': 'export const createCacheObserver = () => () => {}',
}
export async function load(url, context, next) {
  const name = Object.keys(silent).find((one) => url.endsWith('/metrics/' + one))
  return name === undefined ? next(url, context) : { format: 'module', source: silent[name], shortCircuit: true }
}`

register(`data:text/javascript,${encodeURIComponent(hooks)}`)
