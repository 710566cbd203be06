import { simulationTable } from './simulation.ts'

/** `npm run simulate`: what becomes of hit ratio, upstreams and the store with more instances and regions. */
for (const line of simulationTable()) console.log(line)
