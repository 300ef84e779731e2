"""Random tests are the same everywhere; the slow ones are marked, here and nowhere else."""

from fnmatch import fnmatchcase

import hypothesis

# Random tests are the same on every machine and every day.
hypothesis.settings.register_profile("seeded", derandomize=True, deadline=None, max_examples=200)
hypothesis.settings.load_profile("seeded")

# What takes half a second or more, or seconds for all its cases, by folder, module or name, so
# that it may move.
# `make test-quick` leaves it out, and shows what else has become slow.
SLOW_FOLDERS = {"cli", "engines", "explore", "hostile"}  # processes that import all, a browser
SLOW_MODULES = {
    "test_convex_solver",
    "test_divergences",
    "test_interpreter",
    "test_kernels",
    "test_laws",
    "test_reproduction",
    "test_witness",
}
SLOW_NAMES = (
    "test_*_twelve_digits",
    "test_a_ball_of_ones_own_works*",
    "test_a_network_with_shared_leaves_follows_the_recursion",
    "test_a_sample_holds_what_smoothing_allows",
    "test_accuracy_on_*_is_on_par_with_a_random_forest",
    "test_adult_is_read_as_uci_writes_it",
    "test_an_archive_that_expands_without_end_is_refused",
    "test_any_parts_give_the_same_model",
    "test_arrays_changed_at_random_are_refused_or_harmless",
    "test_blocks_*_change_nothing",
    "test_both_paths_agree*",
    "test_classes_one_last_digit_apart_do_not_tie",
    "test_complete_rows_are_exact",
    "test_equal_rows_rescale_equal_sizes",
    "test_every_neighbourhood_is_exact",
    "test_five_hundred_times_one_last_digit",
    "test_growth_is_measured_at_every_size",
    "test_hundreds_of_features_*",
    "test_intervals_grow_and_hold_the_maximal_classes",
    "test_it_is_scored_gated_and_evaluated",
    "test_it_takes_part_in_an_experiment",
    "test_joint_probabilities_are_those_of_the_recursion",
    "test_kernels_agree_with_the_recursion",
    "test_kernels_and_recursion_agree_on_forests",
    "test_kernels_and_the_general_path_agree",
    "test_larger_balls_flip_earlier",
    "test_leaves_of_every_make_are_exact",
    "test_long_paths_do_not_underflow",
    "test_many_classes_and_categories_take_no_age",
    "test_many_more_models_are_exact",
    "test_many_rows_on_many_threads_give_the_same_bits",
    "test_margins_change_their_sign_at_the_robustness",
    "test_max_features_limits_what_is_tried",
    "test_naive_bayes_is_bounded_by_the_corners_of_its_balls",
    "test_names_may_be_long",
    "test_nine_curves_are_drawn_and_labelled",
    "test_no_flip_cut_or_splice_gets_through",
    "test_no_local_minimum_of_a_convex_solver_flips_earlier",
    "test_no_secret_of_a_url_is_shown",
    "test_of_two_classes_the_prediction_has_half_where_it_flips",
    "test_probabilities_are_near_those_of_a_random_forest",
    "test_rivals_that_are_left_out_could_not_have_flipped_first",
    "test_robustness_is_drawn_for_right_and_wrong",
    "test_robustness_is_exact",
    "test_rows_with_gaps_*",
    "test_samples_are_drawn_from_the_joint",
    "test_several_balls_at_once_are_what_they_are_alone",
    "test_ten_thousand_columns_are_read",
    "test_the_*_path_is_exact",
    "test_the_flip_is_where_a_grid_of_perturbed_models_finds_it",
    "test_the_hellinger_*",
    "test_the_kernel_agrees_with_the_recursion",
    "test_the_minimiser_lies_in_the_ball_and_attains_the_value",
    "test_the_number_of_records_is_that_of_a_plain_search",
    "test_the_page_of_a_default_forest_is_small_and_holds_the_whole_model",
    "test_verdicts_for_robustness_are_rarely_false",
    "test_zeros_and_locals_without_rows_are_exact",
    "test_zeros_and_tables_without_rows_are_exact",
)

# What a slow test reaches is reached by quick ones too, and tracing the exact arithmetic that it
# compares with would take as long again; but only slow ones reach these.
TRACED = {"cli", "engines", "experiments", "explore", "report"}
REPEATED = {"test_values", "test_verdict"}  # modules of those that others reach the same with


def pytest_collection_modifyitems(items):
    for item in items:
        folder, module = item.path.parent.name, item.path.stem
        name = getattr(item, "originalname", item.name)
        if (
            folder in SLOW_FOLDERS
            or module in SLOW_MODULES
            or any(fnmatchcase(name, pattern) for pattern in SLOW_NAMES)
        ):
            item.add_marker("slow")
            if folder not in TRACED or module in REPEATED:
                item.add_marker("no_cover")
