import { parentPort, workerData } from 'node:worker_threads'
import { gunzipSync } from 'node:zlib'
import type { ApiBundle } from './contracts/openapi/bundle.ts'
import { createResponseChecker, type ResponseSample } from './request/openapi-responses.ts'

// The thread of src/site/response-drift.ts: compiling the schemas of responses takes seconds for some documents.
const { check } = createResponseChecker(
  JSON.parse(gunzipSync(workerData as Uint8Array).toString()) as ApiBundle,
)

parentPort?.on('message', (sample: ResponseSample) => parentPort?.postMessage(check(sample)))
