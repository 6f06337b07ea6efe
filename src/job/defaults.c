/* defaults: the default options of a job. */
#include "job/job.h"

#include <math.h>

struct job_options job_defaults(void)
{
    return (struct job_options){.rtol = -1,
                                .atol = -1,
                                .rel = -1,
                                .wire = WIRE_PLANNED,
                                .repeat = 1,
                                .groups = 1,
                                .start = -1,
                                .temperature = -1,
                                .top_p = -1,
                                .min_p = -1,
                                .penalty = -1,
                                .presence = NAN,
                                .frequency = NAN,
                                .top_k = -1,
                                .sampling_seed = -1};
}
