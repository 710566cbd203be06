import { simulationTable } from './simulation.ts'

/** `npm run simulate`: hit ratio, and load of upstreams and the store, with more instances and regions. */
for (const line of simulationTable()) console.log(line)
