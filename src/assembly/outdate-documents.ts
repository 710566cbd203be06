import type { BuiltService } from './build-service.ts'

/** What the gateway answers itself of a site may be from before a write in another process. */
export const outdateDocuments = (built: readonly BuiltService[], name: string, collection: string): void => {
  built.find(({ config }) => config.name === name)?.service.local?.written(collection)
}
