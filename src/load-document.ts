import { parentPort, workerData } from 'node:worker_threads'
import { loadApiDocument } from './config/load/documents.ts'

// The thread of src/config/load/documents.ts for large documents.
parentPort?.postMessage(await loadApiDocument(workerData as string))
